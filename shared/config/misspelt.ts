import { nearestName } from '../nearestName.ts'
import { mcpVariables, variables } from './variables.ts'

/** Names an environment variable that looks like a misspelt setting, and the setting that the operator may mean. */
export type Misspelt = { name: string; nearest: string }

const KNOWN = [...Object.keys(variables.shape), ...Object.keys(mcpVariables.shape)]

/**
 * Limits how much a variable's name may differ from a setting's name: one changed character in every CHARS_PER_CHANGE
 * characters, and at most CHANGES_MAX in all. With more differences the name does not count as misspelt. Therefore
 * HOME, which a shell sets, is no misspelling of HOST.
 */
const CHARS_PER_CHANGE = 4
const CHANGES_MAX = 3
/**
 * Sets the maximum length of an environment variable's name that the spelling check compares with the names of the
 * settings. No setting has a longer name, so a longer name belongs to another program.
 */
const NAME_CHARS_MAX = 40

/**
 * Returns the environment variables that are no setting but have almost the name of a setting. The service warns about
 * these variables, because a misspelt setting has no effect.
 */
export const misspeltVariables = (env: Record<string, string | undefined>): Misspelt[] =>
  Object.keys(env)
    .filter((name) => !KNOWN.includes(name) && name.length <= NAME_CHARS_MAX)
    .flatMap((name) => {
      const most = Math.min(Math.floor(name.length / CHARS_PER_CHANGE), CHANGES_MAX)
      // The function skips settings with a very different name length, because the computation of all distances would
      // add 30 ms to the start of a process.
      const near = KNOWN.filter((known) => Math.abs(known.length - name.length) <= most)
      const nearest = nearestName(name, near)
      if (nearest === undefined || nearest.distance > most) return []
      return [{ name, nearest: nearest.name }]
    })
    // If the environment also holds the correctly written setting, the similar variable does not count as misspelt.
    .filter(({ nearest }) => (env[nearest] ?? '') === '')

export const misspeltLine = ({ name, nearest }: Misspelt): string =>
  `${name}: it is no setting and has no effect; the nearest setting is ${nearest}`
