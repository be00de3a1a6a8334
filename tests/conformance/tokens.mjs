// How many tokens (o200k) each of the texts has: a JSON array on standard input, one of numbers on standard output.
//   node tokens.mjs FOLDER_OF_NODE_MODULES
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const { countTokens } = createRequire(`${process.argv[2]}/`)('gpt-tokenizer/encoding/o200k_base');
console.log(JSON.stringify(JSON.parse(readFileSync(0, 'utf8')).map((text) => countTokens(text))));
