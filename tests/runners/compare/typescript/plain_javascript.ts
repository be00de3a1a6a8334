"use strict";
var a = 1;
var exported = module.exports = { a };
console.log(this === undefined || typeof this, a, exported);
