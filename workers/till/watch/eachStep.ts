import { RpcTrouble } from '../chain/rpc.ts'

/**
 * Runs all steps of a chain check, even if the chain node fails at one of them. Otherwise a step that fails at each
 * poll would stop all later steps, such as the step for stuck transactions. @throws {RpcTrouble} of the first step that
 * failed.
 */
export async function eachStep(steps: readonly (() => Promise<void>)[]): Promise<void> {
  let first: RpcTrouble | null = null
  for (const step of steps) {
    try {
      await step()
    } catch (error) {
      if (!(error instanceof RpcTrouble)) throw error
      first ??= error
    }
  }
  if (first !== null) throw first
}
