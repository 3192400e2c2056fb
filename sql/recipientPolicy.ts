import type { Queryable } from './db.ts'

/** Recipients that a project wants to write to. */
export type WantedRecipients = { projectId: string; addresses: readonly string[] }

/** Why a recipient is refused. */
export type Refusal = { address: string; reason: 'suppressed' }

/**
 * Which recipients mail may not go to. All that decides on recipients, where a message is accepted, decides here.
 * @returns for each question, in order, those that are refused.
 */
export async function refusedRecipients(
  db: Queryable,
  wanted: readonly WantedRecipients[],
): Promise<Refusal[][]> {
  const asked = wanted.flatMap(({ projectId, addresses }, n) =>
    addresses.map((address) => ({ n, projectId, address })),
  )
  const { rows } = await db.query<{ n: number; address: string }>({
    name: 'refused-recipients',
    text: `
      select w.n, w.address from unnest($1::int[], $2::text[], $3::text[]) w (n, project_id, address)
      join suppressions s on s.project_id = w.project_id and s.address = lower(w.address)`,
    values: [
      asked.map(({ n }) => n),
      asked.map(({ projectId }) => projectId),
      asked.map(({ address }) => address),
    ],
  })
  const refused: Refusal[][] = wanted.map(() => [])
  for (const { n, address } of rows) refused[n]!.push({ address, reason: 'suppressed' })
  return refused
}
