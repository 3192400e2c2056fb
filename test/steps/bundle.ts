/** Builds one JavaScript file from a module, its imports and their packages, with the step counter inserted. */
import { writeFileSync } from 'node:fs'
import { instrument } from './instrument.ts'

export async function bundleWithSteps(entry: string, to: string): Promise<void> {
  const { outputs, success, logs } = await Bun.build({ entrypoints: [entry], target: 'bun' })
  if (!success) throw new AggregateError(logs)
  writeFileSync(to, instrument(await outputs[0]!.text()))
}
