# stdin: a line\n
import asyncio
import sys


async def main():
    print(await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline))


asyncio.run(main())
