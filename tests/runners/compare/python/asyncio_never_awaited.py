import asyncio


async def f():
    pass


f()
print("policy", type(asyncio.get_event_loop_policy()).__name__)
try:
    asyncio.get_running_loop()
except RuntimeError as e:
    print(e)
