// Finds a program in the package of this platform.
'use strict'

module.exports = (name) => {
  const platform = `${process.platform}-${process.arch}`
  const file = process.platform === 'win32' ? `${name}.exe` : name
  try {
    return require.resolve(`@ralph-loop/${platform}/bin/${file}`)
  } catch {
    const known = Object.keys(require('./package.json').optionalDependencies).map((name) => name.split('/')[1])
    const why = known.includes(platform)
      ? `its package @ralph-loop/${platform} is not installed: install @ralph-loop/ralph without --omit=optional`
      : `there is none for ${platform}, only for ${known.join(', ')}`
    throw new Error(`cannot find the program: ${why}`)
  }
}
