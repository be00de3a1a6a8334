# args: --help
import argparse

parser = argparse.ArgumentParser(description="what it does")
parser.add_argument("--number", type=int, default=5, help="a number")
parser.parse_args()
