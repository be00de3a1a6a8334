console.log("before");
// @ts-ignore
undefinedFunction();
