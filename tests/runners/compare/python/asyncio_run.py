# ways: started preloading
import asyncio


async def work(n):
    await asyncio.sleep(0.2 * n)
    print("done", n)
    return n * n


async def main():
    print(await asyncio.gather(*(work(n) for n in (3, 1, 2))))
    async with asyncio.timeout(5):
        process = await asyncio.create_subprocess_exec("echo", "from a child", stdout=asyncio.subprocess.PIPE)
        print((await process.communicate())[0], process.returncode)
    print(await asyncio.to_thread(lambda: "in a thread"))


asyncio.run(main())
