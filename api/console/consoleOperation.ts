import type { Route } from '../docs/routeTable.ts'

/** The `detail` of a route of the console: it stands in no documentation, and says only what the gate must know. */
export const consoleOperation = (
  detail: Pick<Route, 'access'> & Partial<Pick<Route, 'framed' | 'bodyMaxBytes'>> = {
    access: 'console',
  },
) => detail as unknown as { summary: string }
