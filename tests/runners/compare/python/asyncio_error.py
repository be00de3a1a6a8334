import asyncio


async def fail():
    raise ValueError("in a task")


async def main():
    task = asyncio.create_task(fail())
    await asyncio.sleep(0)
    try:
        await asyncio.wait_for(asyncio.sleep(10), 0.01)
    except TimeoutError as e:
        print("timeout", repr(e))
    await task


asyncio.run(main())
