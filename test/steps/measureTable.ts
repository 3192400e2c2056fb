import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bundleWithSteps } from './bundle.ts'
import type { Report } from './main.ts'
import type { Effort } from './measure.ts'

/** Measures in a separate process the readers (functions that read untrusted text) that `file` exports as `table`. */
export async function measureTable(file: string, table: string, effort: Effort): Promise<Report> {
  const directory = mkdtempSync(join(tmpdir(), 'purser-steps-'))
  try {
    const bundle = join(directory, 'readers.mjs')
    await bundleWithSteps(join(import.meta.dir, file), bundle)
    const main = join(import.meta.dir, 'main.ts')
    const child = Bun.spawn([process.execPath, main, bundle, table, JSON.stringify(effort)], {
      stdout: 'pipe',
      stderr: 'inherit',
    })
    const output = await new Response(child.stdout).text()
    if ((await child.exited) !== 0) throw new Error(`the measurement ended: ${output}`)
    return JSON.parse(output) as Report
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
