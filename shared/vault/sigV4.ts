/**
 * Signs requests with AWS Signature Version 4 in the header Authorization ("Signing AWS API requests", AWS IAM User
 * Guide).
 */
import { createHash, createHmac } from 'node:crypto'

export type AwsKeys = { accessKeyId: string; secretAccessKey: string; sessionToken: string | null }

/**
 * Describes an unsigned AWS request. The fields `region` and `service` name the region and the service of the AWS
 * endpoint.
 */
export type AwsRequest = {
  method: string
  url: string
  headers: Record<string, string>
  body: string
  region: string
  service: string
}

const ALGORITHM = 'AWS4-HMAC-SHA256'
/** Lists the headers that the signature leaves out, because proxies may change these headers in transit. */
const UNSIGNED = new Set(['authorization', 'connection', 'expect', 'user-agent', 'x-amzn-trace-id'])

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()

/** Percent-encodes a text for an AWS signature. Only unreserved characters (RFC 3986 §2.3) stay unencoded. */
const encode = (text: string) =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  )

/**
 * Lists the services of S3. Only requests to S3 need the header `x-amz-content-sha256`, and only their signatures cover
 * the path exactly as the path stands in the URL.
 */
const S3_SERVICES = new Set(['s3', 's3express', 's3-object-lambda', 's3-outposts'])

/**
 * Returns the path of the URL as AWS signs it. For most services, AWS removes the empty segments and percent-encodes
 * the URL's path a second time. For S3, AWS keeps each segment and encodes it only once, so that `!` and `%21` in a URL
 * have the same signature.
 */
function canonicalPath({ pathname }: URL, service: string): string {
  const segments = pathname.slice(1).split('/')
  const signed = S3_SERVICES.has(service)
    ? segments.map(decoded)
    : segments.filter((segment, n) => segment !== '' || n === segments.length - 1)
  return `/${signed.map(encode).join('/')}`
}

function canonicalQuery({ search }: URL): string {
  const pairs = search
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const [name = '', ...value] = pair.split('=')
      return [decoded(name), decoded(value.join('='))].map(encode)
    })
  return pairs
    .sort(([a, x], [b, y]) => compare(a!, b!) || compare(x!, y!))
    .map((pair) => pair.join('='))
    .join('&')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const compare = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0)

/**
 * Returns the headers that sign an AWS request: `authorization` and `x-amz-date`. The function adds
 * `x-amz-content-sha256` for S3, and `x-amz-security-token` for a session token.
 */
export function signAwsRequest(
  request: AwsRequest,
  keys: AwsKeys,
  at: Date,
): Record<string, string> {
  const { method, region, service } = request
  const url = new URL(request.url)
  const time = at.toISOString().replace(/[-:]|\.\d{3}/g, '')
  const bodyHash = sha256(request.body)
  const added = {
    'x-amz-date': time,
    ...(S3_SERVICES.has(service) ? { 'x-amz-content-sha256': bodyHash } : {}),
    ...(keys.sessionToken === null ? {} : { 'x-amz-security-token': keys.sessionToken }),
  }
  const headers = new Map<string, string>([['host', url.host]])
  for (const [name, value] of Object.entries({ ...request.headers, ...added })) {
    const lower = name.toLowerCase()
    if (!UNSIGNED.has(lower)) headers.set(lower, value.trim().replace(/ +/g, ' '))
  }
  const names = [...headers.keys()].sort(compare)
  const canonical = [
    ...[method, canonicalPath(url, service), canonicalQuery(url)],
    ...names.map((name) => `${name}:${headers.get(name)}`),
    ...['', names.join(';'), bodyHash],
  ].join('\n')
  const scope = `${time.slice(0, 8)}/${region}/${service}/aws4_request`
  const steps = [time.slice(0, 8), region, service, 'aws4_request']
  const key = steps.reduce<string | Buffer>(hmac, `AWS4${keys.secretAccessKey}`)
  const signature = hmac(key, [ALGORITHM, time, scope, sha256(canonical)].join('\n')).toString(
    'hex',
  )
  const credential = `Credential=${keys.accessKeyId}/${scope}`
  return {
    authorization: `${ALGORITHM} ${credential}, SignedHeaders=${names.join(';')}, Signature=${signature}`,
    ...added,
  }
}
