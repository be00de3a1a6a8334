# stdin: name,value\na,1\n"b, c",2\n
import csv
import sys

for row in csv.DictReader(sys.stdin):
    print(row)
