# env: PANDAS_COPY_ON_WRITE=1
# ways: all
# new: started preloaded preloading
import pandas

print(pandas.get_option("mode.copy_on_write"))
