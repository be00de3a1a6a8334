import { Database } from "bun:sqlite";
const db = new Database("data.db");
db.run("create table t (a integer, b text)");
db.run("insert into t values (?, ?)", [1, "ü"]);
console.log(db.query("select * from t").all());
db.close();
