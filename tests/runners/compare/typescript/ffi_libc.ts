import { CString, FFIType, dlopen } from "bun:ffi";
const libc = dlopen("libc.so.6", { getenv: { args: [FFIType.cstring], returns: FFIType.cstring }, getpid: { args: [], returns: FFIType.int } });
console.log(libc.symbols.getpid() === process.pid, String(libc.symbols.getenv(Buffer.from("LANG\0"))), libc.symbols.getenv(Buffer.from("LD_PRELOAD\0")));
