# ways: started preloading
import sys


def main():
    try:
        return 9
    finally:
        print("cleaning")


if __name__ == "__main__":
    sys.exit(main())
