import type { Route } from '../docs/routeTable.ts'

/** The `detail` of a console route. It holds only settings of the gate; console routes are undocumented. */
export const consoleOperation = (
  detail: Pick<Route, 'access'> & Partial<Pick<Route, 'framed' | 'form' | 'bodyMaxBytes'>> = {
    access: 'console',
  },
) => detail as unknown as { summary: string }
