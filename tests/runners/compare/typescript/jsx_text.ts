const tag = (strings: TemplateStringsArray, ...values: unknown[]) => strings.raw.join("|") + values.join(",");
console.log(tag`a${1}b\n${2}`, `multi
line`, "\u{1F600}", "é".normalize("NFD").length);
using resource = { [Symbol.dispose]() { console.log("disposed"); } };
