import { nearestName } from '../nearestName.ts'
import { mcpVariables, variables } from './variables.ts'

/** Names a variable of the environment that looks like a setting, and the setting that it may mean. */
export type Misspelt = { name: string; nearest: string }

const KNOWN = [...Object.keys(variables.shape), ...Object.keys(mcpVariables.shape)]

/**
 * A name may differ in one character for each four, and in three at most. So HOME, which a shell sets, is no misspelt
 * HOST.
 */
const CHARS_PER_CHANGE = 4
const CHANGES_MAX = 3
/** No setting has a longer name. Only the operating system limits the environment of a process. */
const NAME_CHARS_MAX = 40

/**
 * Returns variables that are no setting and are spelt almost like a setting. A misspelt setting would have no effect.
 */
export const misspeltVariables = (env: Record<string, string | undefined>): Misspelt[] =>
  Object.keys(env)
    .filter((name) => !KNOWN.includes(name) && name.length <= NAME_CHARS_MAX)
    .flatMap((name) => {
      const most = Math.min(Math.floor(name.length / CHARS_PER_CHANGE), CHANGES_MAX)
      // A name that is shorter or longer by more is farther: all distances cost a process 30 ms of its start.
      const near = KNOWN.filter((known) => Math.abs(known.length - name.length) <= most)
      const nearest = nearestName(name, near)
      if (nearest === undefined || nearest.distance > most) return []
      return [{ name, nearest: nearest.name }]
    })
    // If the nearest setting is set by its right name, the variable means something else.
    .filter(({ nearest }) => (env[nearest] ?? '') === '')

export const misspeltLine = ({ name, nearest }: Misspelt): string =>
  `${name}: it is no setting and has no effect; the nearest setting is ${nearest}`
