#!/usr/bin/env node
// Starts the program of the platform's package. `link.js` puts the program itself into this place where npm may run scripts.
'use strict'

const { spawn } = require('node:child_process')
const { constants } = require('node:os')
const find = require('../find.js')

function fail(why) {
  console.error(`ralph: ${why}`)
  process.exit(1)
}

let program
try {
  program = find('ralph')
} catch (error) {
  fail(error.message)
}

// A terminal sends these to the program, too: to pass them on would send them twice.
const fromTerminal = process.stdin.isTTY ? ['SIGINT', 'SIGQUIT'] : []
const passedOn = ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP', 'SIGUSR2', 'SIGCONT', 'SIGWINCH']

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' })
for (const signal of passedOn) {
  // Windows does not have all of them.
  if (signal in constants.signals) process.on(signal, () => fromTerminal.includes(signal) || child.kill(signal))
}
child.on('error', (error) => fail(`cannot start ${program}: ${error.message}`))
child.on('exit', (code, signal) => {
  if (signal === null) return process.exit(code)
  // Ends the same way, so that the caller sees what happened.
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
  // Signals that Node keeps for itself.
  setTimeout(() => process.exit(128 + constants.signals[signal]), 1000)
})
