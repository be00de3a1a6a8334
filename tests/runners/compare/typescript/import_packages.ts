import postgres from "postgres";
import pg, { Client } from "pg";
import csv from "csv-parser";
import Papa from "papaparse";
console.log(typeof postgres, typeof pg.Pool, typeof Client, typeof csv, Papa.parse("a,b\n1,2", { header: true }).data);
console.log(import.meta.resolve("pg"), require.resolve("papaparse"));
