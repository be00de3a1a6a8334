# ways: started preloaded
import decimal

print(decimal.getcontext().flags[decimal.Inexact], decimal.getcontext().flags[decimal.Rounded])
