import { nearestName } from '../nearestName.ts'
import { mcpVariables, variables } from './variables.ts'

/** Names an environment variable that looks like a misspelt setting, and the setting that it may mean. */
export type Misspelt = { name: string; nearest: string }

const KNOWN = [...Object.keys(variables.shape), ...Object.keys(mcpVariables.shape)]

/**
 * A variable's name counts as misspelt if it differs from a setting in at most one of every four characters, and in at
 * most three characters altogether. So HOME, which a shell sets, does not count as a misspelling of HOST.
 */
const CHARS_PER_CHANGE = 4
const CHANGES_MAX = 3
/**
 * Sets the maximum length of a variable name that is compared with the settings. No setting has a longer name than this
 * limit, but a variable of the environment may have a name of any length.
 */
const NAME_CHARS_MAX = 40

/**
 * Returns the environment variables that are no setting but are spelt almost like a setting. A misspelt setting would
 * have no effect.
 */
export const misspeltVariables = (env: Record<string, string | undefined>): Misspelt[] =>
  Object.keys(env)
    .filter((name) => !KNOWN.includes(name) && name.length <= NAME_CHARS_MAX)
    .flatMap((name) => {
      const most = Math.min(Math.floor(name.length / CHARS_PER_CHANGE), CHANGES_MAX)
      // Settings whose names differ too much in length are skipped, because computing all distances would add 30 ms to
      // the start of a process.
      const near = KNOWN.filter((known) => Math.abs(known.length - name.length) <= most)
      const nearest = nearestName(name, near)
      if (nearest === undefined || nearest.distance > most) return []
      return [{ name, nearest: nearest.name }]
    })
    // If the similar setting is set too, the variable is no misspelling of the setting.
    .filter(({ nearest }) => (env[nearest] ?? '') === '')

export const misspeltLine = ({ name, nearest }: Misspelt): string =>
  `${name}: it is no setting and has no effect; the nearest setting is ${nearest}`
