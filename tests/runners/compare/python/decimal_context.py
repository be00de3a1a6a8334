# ways: started preloaded
import decimal
import fractions

print(decimal.getcontext(), decimal.Decimal(1) / 3, fractions.Fraction("0.125"))
decimal.getcontext().prec = 5
print(decimal.Decimal(2).sqrt(), 0.1 + 0.2, round(2.5), float.hex(0.1))
