// ways: all
console.log("never");
const x = ;
