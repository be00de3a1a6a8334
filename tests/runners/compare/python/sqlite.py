# ways: started preloading
import sqlite3

db = sqlite3.connect("data.db")
db.execute("create table t (a integer, b text)")
db.executemany("insert into t values (?, ?)", [(1, "x"), (2, "ü")])
db.commit()
print(db.execute("select sum(a), group_concat(b) from t").fetchall())
db.close()
db = sqlite3.connect(":memory:")
try:
    db.execute("select * from missing")
except sqlite3.OperationalError as e:
    print(e)
