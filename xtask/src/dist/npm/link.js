// After the installation: puts the program itself where the command is, so that no Node is started in front of it, and `ralph-fleet` beside it.
// Downloads nothing. Where this cannot be done, the command stays the small script that starts the program, which then has the other one beside it.
'use strict'

const fs = require('node:fs')
const path = require('node:path')

function put(name) {
  const place = path.join(__dirname, 'bin', name)
  const beside = `${place}.${process.pid}`
  try {
    const program = require('./find.js')(name)
    try {
      fs.linkSync(program, beside)
    } catch {
      fs.copyFileSync(program, beside)
    }
    fs.chmodSync(beside, 0o755)
    fs.renameSync(beside, place)
    return true
  } catch {
    fs.rmSync(beside, { force: true })
    return false
  }
}

// Only npm links a command to the file itself; others wrap it with `node`, and on Windows so does npm.
const byNpm = (process.env.npm_config_user_agent || '').startsWith('npm/')
if (byNpm && process.platform !== 'win32' && put('ralph-fleet')) put('ralph')
