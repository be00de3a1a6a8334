# env: TZ=Asia/Tokyo
# ways: started preloading
# new: started preloaded
import datetime
import time

print(time.tzname, time.timezone, datetime.datetime.fromtimestamp(0), time.strftime("%H:%M", time.localtime(0)))
