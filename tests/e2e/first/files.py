"""files of the conversation"""
from first_tries import bash, python, tool

ROWS = (
    ("a file that one call writes is there for the next, by the path that assistants use",
     [bash("echo a,b > sales.csv"), python("print(open('/mnt/data/sales.csv').read())")], "a,b", "exit code 0"),
    ("read_file of what a program wrote", [bash("echo hi > note.txt"), tool("read_file", filename="note.txt")], "hi"),
)
