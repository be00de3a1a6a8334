// file: data.json
//| {"a": [1, 2, {"b": null}]}
// file: data.toml
//| [section]
//| key = "value"
// file: data.txt
//| some text
import data from "/data/data.json";
import toml from "/data/data.toml";
import text from "/data/data.txt" with { type: "text" };
console.log(data, toml, text);
