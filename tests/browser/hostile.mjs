// Programs that try to get out of the page by what they print and how they name files.

const SCRIPT = "<script>pwned=1</script>";
const IMAGE = "<img src=x onerror=pwned=1>";
const AWAY = "http://192.0.2.1";

const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="80" height="80" onload="pwned=1"><script>parent.pwned=1</script><image href="${AWAY}/a.png" width="9" height="9"/><style>@import "${AWAY}/s.css";</style><foreignObject><iframe xmlns="http://www.w3.org/1999/xhtml" src="${AWAY}/f"/></foreignObject><rect width="40" height="40"/></svg>`;

const markdown = `# ${SCRIPT}
${IMAGE}
[a](javascript:pwned=1) [b](JaVaScRiPt:pwned=1) [c](data:text/html,${SCRIPT}) [d](vbscript:x) [e](//192.0.2.1/x "${IMAGE}")
![p](${AWAY}/track.png) ![q](javascript:pwned=1) ![r](x" onerror="pwned=1)
<a href="javascript:pwned=1">x</a> <iframe srcdoc="${SCRIPT}"></iframe>
<style>body{display:none}</style><svg onload=pwned=1>
[ref]: javascript:pwned=1
[ref]
\`\`\`html
${SCRIPT}
\`\`\`
| ${SCRIPT} | b |
|---|---|
| ${IMAGE} | [x](javascript:pwned=1) |
- [x] ${IMAGE}
${"> ".repeat(200)}deep
`;

const FILES = {
  "page.html": `${SCRIPT}${IMAGE}`,
  "picture.svg": svg,
  "wrong.png": svg,
  "read.md": markdown,
  "table.csv": `${SCRIPT},=cmd|' /C calc'!A0\n${IMAGE},javascript:pwned=1\n"</td>${SCRIPT}",__proto__\n`,
  "data.json": `{"__proto__": {"x": 1}, "a": "${SCRIPT}"}`,
  "code.js": "pwned=1",
  [`${IMAGE}.txt`]: "x",
  ["\"><b onmouseover=pwned=1>.csv"]: "a,b\n1,2\n",
  ["\u202egnp.exe.txt"]: "x",
  "new\nline.md": "# x\n",
  "__proto__": "x",
  "constructor": "x",
  "javascript:pwned=1": "x",
  [`${"long".repeat(40)}.txt`]: "x",
};

/** Python that writes them. */
export const hostileFiles = `import json
for name, text in json.loads(r'''${JSON.stringify(FILES).replace(/'/g, "\\u0027")}''').items():
    open(name, "w").write(text)
`;

/** Python that prints sequences of all kinds. */
export const hostileOutput = `
print(${JSON.stringify(markdown)})
print("\\x1b]0;title\\x07\\x1b]8;;javascript:pwned=1\\x1b\\\\link\\x1b]8;;\\x1b\\\\ \\x1b]52;c;cHduZWQ=\\x07")
print("\\x1b[999999999;999999999H\\x1b[999999999A\\x1b[2J\\x1b[?1049h\\x1b[6n\\x1b[38;2;\\"onload=x;1mX\\x1b[38;5;999mY\\x1b[48;2;1;2m \\x9b31mZ")
print("\\x1b[" + "1;" * 100000 + "m", "\\x1b]" + "x" * 100000)
print("\\u202eright to left \\u2066 \\u200f")
print("a" * 300000)
print("".join(f"\\x1b[{30 + n % 8}m{n % 10}" for n in range(60000)))
print("\\r".join("overwritten" for n in range(2000)))
print("\\x1b[3000A" * 50 + "up")
print("<script>pwned=1</script>", "\\0\\x01\\x02\\x7f\\x85")
`;
