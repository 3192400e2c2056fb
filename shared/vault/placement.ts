/**
 * Decides in which places of a request a secret may stand. Even an honest host publishes some of the texts that it
 * receives, such as a note, a title or a user name. Therefore the service sends a secret only in a place that servers
 * keep secret.
 *
 * | place         | is                                                                             |
 * | ------------- | ------------------------------------------------------------------------------ |
 * | `header:NAME` | the value of a header                                                          |
 * | `basic`       | `Authorization: Basic {{basicAuth}}`, and nothing else                         |
 * | `query:NAME`  | the value of a query parameter                                                 |
 * | `form:NAME`   | the value of a field of an application/x-www-form-urlencoded body              |
 * | `json:/A/B`   | a string of a JSON body, by its JSON Pointer (RFC 6901)                        |
 * | `path:PREFIX` | the path right behind exactly this text: `path:/bot` is `/bot{{token}}/send`   |
 * | `body`        | anywhere in the body, of any type                                              |
 *
 * The entry `FIELD@PLACE` allows only one field of the credential in a place. Blanks in the name of a header, parameter
 * or field are percent-encoded in an entry.
 */

import { headerKey } from '../http/headerName.ts'
import type { Meet } from './bounds/narrowing.ts'
import type { CredentialType } from './credential.ts'

/**
 * Sets the maximum number of entries in the placement of one credential. Each entry names an allowed place of the
 * secret in a request.
 */
export const PLACEMENT_MAX = 40

/** Describes the format of a placement entry (a place where a secret may stand), for error messages. */
export const PLACEMENT_RULE =
  'be header:NAME, basic, query:NAME, form:NAME, json:/POINTER, path:/PREFIX or body, with FIELD@ before it for one field'

const ENTRY =
  /^(?:([A-Za-z][\w-]{0,63})@)?(?:(basic|body)|(header|query|form|json|path):(\S{1,200}))$/
const HEADER_NAME = /^[!#$%&'*+.^_`|~\w-]{1,128}$/
/** Matches headers that must never hold a secret, because they control the connection or the reading of the body. */
const NO_PLACE =
  /^(?:host|connection|cookie2|te|trailer|upgrade|expect|content-.+|transfer-.+|accept.*)$/

/**
 * Writes the name of a header, parameter or field in the form that placement entries (allowed places of a secret) use.
 */
export const placeName = (name: string): string => name.replace(/[\s%\p{Cc}]/gu, encodeURIComponent)

/**
 * Returns the canonical form of an entry in a credential's placement (the list of allowed places of its secret).
 * @returns null if the text is malformed.
 */
export function parsePlacement(text: string): string | null {
  const [, field, word, kind, given = ''] = ENTRY.exec(text) ?? []
  const before = field === undefined ? '' : `${field}@`
  if (word !== undefined) return before + word
  if (kind === undefined) return null
  if (kind === 'header') {
    const name = given.toLowerCase()
    return HEADER_NAME.test(name) && !NO_PLACE.test(headerKey(name))
      ? `${before}header:${name}`
      : null
  }
  if (kind === 'path') return /^\/[^?#{}\\]*$/.test(given) ? `${before}path:${given}` : null
  if (kind === 'json' && !given.startsWith('/')) return null
  try {
    return `${before}${kind}:${placeName(decodeURIComponent(given))}`
  } catch {
    return null
  }
}

const split = (entry: string): [string | null, string] => {
  const [, field, place] = /^(?:([A-Za-z][\w-]*)@)?(.*)$/s.exec(entry)!
  return [field ?? null, place!]
}

/**
 * Tells whether the place `wide` in a request includes the place `narrow`. For example, the place `body` includes every
 * field of a form.
 */
const within = (wide: string, narrow: string): boolean =>
  wide === narrow ||
  (wide === 'body' && /^(?:json|form):/.test(narrow)) ||
  (wide === 'header:authorization' && narrow === 'basic')

export const meetPlacements: Meet = (one, other) => {
  const [[fieldA, placeA], [fieldB, placeB]] = [split(one), split(other)]
  if (fieldA !== null && fieldB !== null && fieldA !== fieldB) return null
  const place = within(placeA, placeB) ? placeB : within(placeB, placeA) ? placeA : null
  const field = fieldA ?? fieldB
  return place === null || field === null ? place : `${field}@${place}`
}

/**
 * Tells whether the placement of a credential allows a credential field in one of the given places of a request.
 * @param fields lists all names of one field, because `apiKey` and `key` may name the same field.
 */
export const mayStand = (
  placement: readonly string[],
  fields: readonly string[],
  places: readonly string[],
): boolean =>
  fields.some((field) =>
    places.some((place) => {
      const here = `${field}@${place}`
      return placement.some((entry) => meetPlacements(entry, here) === here)
    }),
  )

/**
 * Returns the default placement of a credential field: the JSON body members and the form fields with the given names.
 */
const named = (field: string, ...names: string[]): string[] =>
  names.flatMap((name) => [`${field}@json:/${name}`, `${field}@form:${name}`])

/**
 * Holds the default placement (the allowed places of a secret) of each credential type. A password may stand only in
 * the password field of a login form, and never in the user name field, because a host shows user names to others. A
 * token may stand in the header Authorization, which no honest host publishes. An SSH key or a certificate may stand
 * nowhere in an HTTP request.
 */
const DEFAULTS: Record<CredentialType, readonly string[]> = {
  LOGIN: [
    'basic',
    ...named('password', 'password'),
    ...named('username', 'username', 'login', 'email'),
    ...named('totp', 'totp', 'otp'),
  ],
  API_KEY: ['header:authorization'],
  OAUTH: ['header:authorization'],
  CUSTOM: ['header:authorization'],
  TOTP: named('totp', 'totp', 'otp'),
  AWS: ['sessionToken@header:x-amz-security-token'],
  DATABASE: ['basic'],
  SMTP: ['basic'],
  SSH_KEY: [],
  CERTIFICATE: [],
  CARD: ['cardholder', 'number', 'cvc', 'expMonth', 'expYear', 'zip'].flatMap((field) =>
    named(field, field),
  ),
  SHIPPING_ADDRESS: [
    ...['name', 'line1', 'line2', 'city', 'state', 'postcode', 'country', 'phone'].flatMap(
      (field) => named(field, field),
    ),
  ],
}

/**
 * Returns the default placement (the allowed places of a secret) of a credential type. An unknown credential type gets
 * no allowed place.
 */
export const defaultPlacement = (type: string): readonly string[] =>
  Object.hasOwn(DEFAULTS, type) ? DEFAULTS[type as CredentialType] : []
