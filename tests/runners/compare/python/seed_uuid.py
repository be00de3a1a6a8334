# fresh: ^4 (\S+)
# fresh: ^1 (\S+)
# ways: started preloaded
import uuid

print("4", uuid.uuid4())
print("1", uuid.uuid1())
print(uuid.uuid5(uuid.NAMESPACE_DNS, "example.org"))
