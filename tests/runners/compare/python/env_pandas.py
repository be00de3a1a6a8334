# env: PANDAS_COPY_ON_WRITE=1
# ways: all
# anew: light full mid
import pandas

print(pandas.get_option("mode.copy_on_write"))
