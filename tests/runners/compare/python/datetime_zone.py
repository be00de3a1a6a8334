# ways: started preloaded
import datetime
import zoneinfo

moment = datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.timezone.utc)
for name in ("Europe/Berlin", "America/New_York", "Asia/Kolkata"):
    try:
        print(moment.astimezone(zoneinfo.ZoneInfo(name)))
    except zoneinfo.ZoneInfoNotFoundError as e:
        print(e)
print(moment.astimezone(), datetime.datetime.strptime("3 March 2021", "%d %B %Y"), moment.strftime("%A %c"))
