/** Describes the bucket that BLOB_STORE names. */
export type BlobPlace = {
  bucket: string
  /** Holds the prefix with which every object name in the bucket begins. */
  prefix: string
  endpoint: string
  region: string
  /**
   * Tells whether the host name in an object's URL contains the bucket's name. Otherwise the path of the URL begins
   * with the bucket's name.
   */
  virtualHosted: boolean
}

export const BLOB_STORE_RULE =
  'must be s3://bucket or s3://bucket/prefix, with the optional parameters endpoint (http or https), region, and style (path or host)'

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const PREFIX = /^(?:[\w.-]{1,64}\/){0,8}$/
const REGION = /^[a-z0-9-]{1,64}$/
const STYLES = ['path', 'host']

/** Reads a bucket from `s3://bucket/prefix?endpoint=…&region=…&style=…`. @returns null if the text is malformed. */
export function parseBlobStore(text: string): BlobPlace | null {
  const [, bucket = '', path = '', query = ''] =
    /^s3:\/\/([^/?#]+)(?:\/([^?#]*))?(?:\?([^#]*))?$/.exec(text) ?? []
  const prefix = path === '' || path.endsWith('/') ? path : `${path}/`
  const parameters = new URLSearchParams(query)
  const given = Object.fromEntries(parameters)
  if (Object.keys(given).length !== parameters.size) return null
  const { region = 'us-east-1', style = 'path', ...others } = given
  const { endpoint = `https://s3.${region}.amazonaws.com`, ...unknown } = others
  const isValid =
    BUCKET.test(bucket) &&
    PREFIX.test(prefix) &&
    REGION.test(region) &&
    STYLES.includes(style) &&
    isEndpoint(endpoint) &&
    Object.keys(unknown).length === 0
  if (!isValid) return null
  return { bucket, prefix, region, endpoint, virtualHosted: style === 'host' }
}

/**
 * Tells whether a URL can be the endpoint of an object store. The URL must contain no credentials, because the service
 * logs URLs. The credentials are in separate environment variables.
 */
function isEndpoint(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password, search } = new URL(text)
  return /^https?:$/.test(protocol) && `${username}${password}${search}` === ''
}
