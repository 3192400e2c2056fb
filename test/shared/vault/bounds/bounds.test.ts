/**
 * Generates lists of paths, and lists of the request parts in which a secret may be used. Compares each decision of the
 * service with the decision of a naive model. A narrower list must not allow any use of a secret that the wider list
 * forbids.
 */
import { expect, test } from 'bun:test'
import {
  isAllowedPath,
  meetPaths,
  parseAllowedPath,
} from '../../../../shared/vault/bounds/allowedPaths.ts'
import { common, isWithin, type Meet } from '../../../../shared/vault/bounds/narrowing.ts'
import { mayStand, meetPlacements, parsePlacement } from '../../../../shared/vault/placement.ts'
import { createRandom } from '../../../chaos/random.ts'

const { pick, int, chance } = createRandom(20_261_122, 'bounds')
const LISTS = 4_000

/**
 * Makes random lists of allowed values. For each of the test values `probes`, compares the decision of the service with
 * that of the naive function `passes`.
 */
function judge(
  meet: Meet,
  entry: () => string,
  probes: readonly string[],
  passes: (list: readonly string[], probe: string) => boolean,
) {
  const wrong: unknown[] = []
  let narrower = 0
  for (let n = 0; n < LISTS; n++) {
    const present = Array.from({ length: int(0, 4) }, entry)
    const wanted = chance(0.5)
      ? Array.from({ length: int(0, 3) }, entry)
      : present.filter(() => chance(0.5))
    const both = common(meet, wanted, present)
    const isSubset = probes.every((one) => !passes(wanted, one) || passes(present, one))
    if (isWithin(meet, wanted, present)) {
      narrower++
      if (!isSubset) wrong.push({ wanted, present })
    }
    for (const one of probes) {
      if (passes(both, one) !== (passes(wanted, one) && passes(present, one))) {
        wrong.push({ wanted, present, both, one })
      }
    }
    if (!isWithin(meet, both, present) || !isWithin(meet, both, wanted)) wrong.push({ both })
  }
  expect(wrong.slice(0, 3)).toEqual([])
  expect(narrower).toBeGreaterThan(LISTS / 5)
}

test(`for ${LISTS} random lists of allowed paths, the narrower of two lists allows no path that the wider list forbids`, () => {
  const path = () => `/${Array.from({ length: int(0, 4) }, () => pick(['a', 'b', 'ab'])).join('/')}`
  const probes = Array.from({ length: 60 }, path)
  judge(
    meetPaths,
    () => parseAllowedPath(path())!,
    probes,
    (list, one) => {
      const parts = one.split('/').filter((part) => part !== '')
      const passes = list.some((entry) =>
        entry
          .split('/')
          .filter((part) => part !== '')
          .every((part, n) => part === parts[n]),
      )
      expect(isAllowedPath(list, one)).toBe(passes)
      return passes
    },
  )
})

test(`for ${LISTS} random lists of the request parts that may hold a secret, the narrower list allows no part that the wider list forbids`, () => {
  const places = ['basic', 'body', 'header:authorization', 'header:x-a', 'query:q', 'json:/a']
  const more = ['json:/a/b', 'form:a', 'form:user[password]', 'path:/bot', 'json:/@a']
  const fields = ['key', 'password']
  const place = () => pick([...places, ...more])
  const probes = [...places, ...more].flatMap((one) => fields.map((field) => `${field} ${one}`))
  judge(
    meetPlacements,
    () => parsePlacement(chance(0.5) ? `${pick(fields)}@${place()}` : place())!,
    probes,
    (list, probe) => {
      const [field = '', where = ''] = probe.split(' ')
      const passes = list.some((entry) => {
        const isOfField = fields.some((one) => entry.startsWith(`${one}@`))
        const to = isOfField ? entry.slice(entry.indexOf('@') + 1) : entry
        if (isOfField && !entry.startsWith(`${field}@`)) return false
        if (to === 'body') return /^(?:json|form):/.test(where) || where === 'body'
        return to === where || (to === 'header:authorization' && where === 'basic')
      })
      expect(mayStand(list, [field], [where])).toBe(passes)
      return passes
    },
  )
})
