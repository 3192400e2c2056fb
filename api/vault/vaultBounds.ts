/**
 * Reads the limits on a credential from a request body: who may read the credential, and where the credential may be
 * used.
 */
import { Type as t } from '@sinclair/typebox'
import {
  ALLOWED_HOST_RULE,
  ALLOWED_HOSTS_MAX,
  parseAllowedHost,
  REVEALS,
} from '../../shared/vault/bounds/allowedHosts.ts'
import {
  ALLOWED_PATH_RULE,
  ALLOWED_PATHS_MAX,
  parseAllowedPath,
} from '../../shared/vault/bounds/allowedPaths.ts'
import { BOUNDS, type Bounds } from '../../shared/vault/bounds/bounds.ts'
import { USE_METHODS } from '../../shared/vault/bounds/useMethods.ts'
import { PLACEMENT_MAX, PLACEMENT_RULE, parsePlacement } from '../../shared/vault/placement.ts'
import { badRequest } from '../http/errors.ts'

const METHODS: readonly string[] = USE_METHODS

/**
 * Holds a parser for each limit on a credential, such as the list of allowed hosts. Each parser reads one entry of the
 * list. It returns the canonical form of the entry, or `null` for an invalid entry.
 */
const READERS = {
  allowedHosts: { most: ALLOWED_HOSTS_MAX, rule: ALLOWED_HOST_RULE, parse: parseAllowedHost },
  allowedMethods: {
    most: METHODS.length,
    rule: `be one of ${METHODS.join(', ')}`,
    parse: (text: string) => (METHODS.includes(text) ? text : null),
  },
  allowedPaths: { most: ALLOWED_PATHS_MAX, rule: ALLOWED_PATH_RULE, parse: parseAllowedPath },
  placement: { most: PLACEMENT_MAX, rule: PLACEMENT_RULE, parse: parsePlacement },
} as const

const entries = (most: number, maxLength: number, description: string) =>
  t.Optional(
    t.Union([t.Array(t.String({ maxLength }), { maxItems: most }), t.Null()], { description }),
  )

/**
 * Describes the fields of a request body that limit the use of a credential. The schema does not check their entries,
 * because the operation that REST and MCP share does so.
 */
export const ProtectionFields = {
  allowedHosts: entries(
    ALLOWED_HOSTS_MAX,
    300,
    'The hosts that a use may reach over https: api.example.com, *.example.com, api.example.com:8443. Null: the host of ' +
      'metadata.uri. An empty list: none.',
  ),
  allowedMethods: entries(
    20,
    10,
    'A use may have these methods. Null allows all methods. An empty list allows none.',
  ),
  allowedPaths: entries(
    ALLOWED_PATHS_MAX,
    1_024,
    'A use may have paths with these prefixes: /v1 allows /v1 and everything below. Null allows all paths. An empty list allows none.',
  ),
  placement: entries(
    PLACEMENT_MAX,
    300,
    'A use may put the secret at these places: header:NAME, basic, query:NAME, form:NAME, json:/POINTER, path:/PREFIX, body. ' +
      'FIELD@ before a place allows only that field. Null means the default of the type. An empty list allows no place.',
  ),
  reveal: t.Optional(
    t.Union(
      REVEALS.map((one) => t.Literal(one)),
      {
        description:
          'With `owner`, no key reads the secret or its codes. Keys can still use the secret and sign with it.',
      },
    ),
  ),
}

/** Describes the fields of a request body that limit the use of a credential. */
export type GivenBounds = { [Bound in (typeof BOUNDS)[number]]?: readonly string[] | null }

/**
 * Returns the given limits on a credential in their canonical form. The result lacks limits that the request does not
 * name. The function throws a 400 error that names an invalid entry.
 */
export function readBounds(given: GivenBounds): Partial<Bounds> {
  const read: Partial<Bounds> = {}
  for (const bound of BOUNDS) {
    const list = given[bound]
    if (list !== undefined) read[bound] = list === null ? null : readEntries(bound, list)
  }
  return read
}

function readEntries(bound: (typeof BOUNDS)[number], given: readonly string[]): string[] {
  const { most, rule, parse } = READERS[bound]
  const read = given.map((text, n) => {
    const entry = parse(text)
    if (entry === null) throw badRequest(`${bound}[${n}] must ${rule}`)
    return entry
  })
  const own = [...new Set(read)]
  if (own.length > most) throw badRequest(`${bound} must hold at most ${most} entries`)
  return bound === 'allowedMethods' ? METHODS.filter((method) => own.includes(method)) : own
}
