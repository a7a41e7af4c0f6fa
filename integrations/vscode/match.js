// Applies the problem matchers of a task in tasks.json to standard input, as VS Code does, and prints what it would list:
// `node match.js "cere: replay" < output`
"use strict";
const fs = require("fs");
const path = require("path");
const text = fs.readFileSync(path.join(__dirname, "tasks.json"), "utf8");
const file = JSON.parse(text.replace(/^\s*\/\/.*$/gm, ""));
const task = file.tasks.find((task) => task.label === process.argv[2]);
const lines = fs.readFileSync(0, "utf8").split(/\r?\n/);
for (const matcher of task.problemMatcher) {
  const patterns = [matcher.pattern].flat();
  for (let at = 0; at + patterns.length <= lines.length; at++) {
    const found = { severity: matcher.severity };
    const all = patterns.every((pattern, step) => {
      const match = new RegExp(pattern.regexp).exec(lines[at + step]);
      for (const part of ["file", "line", "message"]) if (match && pattern[part]) found[part] = match[pattern[part]];
      return match;
    });
    if (all) console.log(`${found.severity} ${found.file}:${found.line}: ${found.message}`);
  }
}
