/** Tests which parts of a request are included in an AWS signature. */
import { describe, expect, test } from 'bun:test'
import { createHash, createHmac } from 'node:crypto'
import { type AwsKeys, type AwsRequest, signAwsRequest } from '../../../shared/vault/sigV4.ts'

const AT = new Date('2026-03-01T12:30:00.123Z')
const TIME = '20260301T123000Z'
const KEYS = { accessKeyId: 'AKID', secretAccessKey: 'soup', sessionToken: null }
const EMPTY_HASH = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

const request = (given: Partial<AwsRequest> = {}): AwsRequest => ({
  method: 'GET',
  url: 'https://api.example/',
  headers: {},
  body: '',
  region: 'eu-west-1',
  service: 'sqs',
  ...given,
})
const sign = (given: Partial<AwsRequest> = {}, keys: Partial<AwsKeys> = {}) =>
  signAwsRequest(request(given), { ...KEYS, ...keys }, AT)
const signatureOf = (given: Partial<AwsRequest>) =>
  /Signature=([0-9a-f]{64})$/.exec(sign(given).authorization!)![1]
const signedHeaders = (given: Partial<AwsRequest>) =>
  /SignedHeaders=([^,]*),/.exec(sign(given).authorization!)![1]

/** Signs a canonical request as the AWS IAM User Guide describes. */
function expected(service: string, ...canonical: string[]): string {
  const hmac = (key: string | Buffer, text: string) =>
    createHmac('sha256', key).update(text).digest()
  const key = ['20260301', 'eu-west-1', service, 'aws4_request'].reduce<string | Buffer>(
    hmac,
    'AWS4soup',
  )
  const hash = createHash('sha256').update(canonical.join('\n')).digest('hex')
  const scope = `20260301/eu-west-1/${service}/aws4_request`
  return hmac(key, ['AWS4-HMAC-SHA256', TIME, scope, hash].join('\n')).toString('hex')
}
/** Signs a GET request to SQS without a body, by its canonical path and query. */
const expectedGet = (path: string, query: string) =>
  expected(
    'sqs',
    ...['GET', path, query, 'host:api.example', `x-amz-date:${TIME}`],
    ...['', 'host;x-amz-date', EMPTY_HASH],
  )
const ofUrl = (rest: string) => signatureOf({ url: `https://api.example${rest}` })

test('the Authorization header of an AWS signature names the key, the day, the region and the service', () => {
  expect(sign()).toEqual({
    authorization: `AWS4-HMAC-SHA256 Credential=AKID/20260301/eu-west-1/sqs/aws4_request, SignedHeaders=host;x-amz-date, Signature=${expectedGet('/', '')}`,
    'x-amz-date': TIME,
  })
})

test('the session token of AWS credentials is sent with the request and covered by the signature', () => {
  const signed = sign({}, { sessionToken: 'token' })
  expect(signed['x-amz-security-token']).toBe('token')
  expect(signed.authorization).toContain('host;x-amz-date;x-amz-security-token')
})

describe('the AWS signature covers the path', () => {
  test('the path in an AWS signature has one more layer of percent-encoding than the path in the URL', () => {
    expect(ofUrl("/a%20b/c(d)!'*/")).toBe(expectedGet('/a%2520b/c%28d%29%21%27%2A/', ''))
  })

  test('the path in an AWS signature has no empty segments, except for S3', () => {
    expect(ofUrl('//')).toBe(expectedGet('/', ''))
    expect(ofUrl('//a//b/')).toBe(expectedGet('/a/b/', ''))
    expect(signatureOf({ service: 's3', url: 'https://api.example/a//b' })).toBe(
      expectedS3('/a//b'),
    )
  })

  const expectedS3 = (path: string, service = 's3') =>
    expected(
      service,
      ...['GET', path, '', 'host:api.example', `x-amz-content-sha256:${EMPTY_HASH}`],
      ...[`x-amz-date:${TIME}`, '', 'host;x-amz-content-sha256;x-amz-date', EMPTY_HASH],
    )

  test('for S3, the AWS signature uses the path of the URL, and the request contains the hash of the body', () => {
    const given = { service: 's3', url: 'https://api.example/a%20b' }
    expect(sign(given)['x-amz-content-sha256']).toBe(EMPTY_HASH)
    expect(signatureOf(given)).toBe(expectedS3('/a%20b'))
  })

  test.each(['s3express', 's3-object-lambda', 's3-outposts'])(
    'a request to the service %s is signed like a request to S3',
    (service) => {
      const given = { service, url: 'https://api.example/a%20b//c' }
      expect(sign(given)['x-amz-content-sha256']).toBe(EMPTY_HASH)
      expect(signatureOf(given)).toBe(expectedS3('/a%20b//c', service))
    },
  )

  test('for S3, a character in the path and its percent-encoding give the same AWS signature', () => {
    const url = (path: string) => ({ service: 's3', url: `https://api.example${path}` })
    expect(signatureOf(url("/a!'()*+@=.txt"))).toBe(expectedS3('/a%21%27%28%29%2A%2B%40%3D.txt'))
    expect(signatureOf(url('/a%2fb/%7e/%zz/'))).toBe(expectedS3('/a%2Fb/~/%25zz/'))
  })
})

describe('the AWS signature covers the query', () => {
  test('the query in an AWS signature is sorted by name, then by value', () => {
    expect(ofUrl('/?b=1&a=2&a=1&a=10')).toBe(expectedGet('/', 'a=1&a=10&a=2&b=1'))
    expect(ofUrl('/?a=1&a=1')).toBe(expectedGet('/', 'a=1&a=1'))
    expect(ofUrl('/?a=z&B=1&%C3%A4=1')).toBe(expectedGet('/', '%C3%A4=1&B=1&a=z'))
  })

  test('in the query of an AWS signature, each name and each value is percent-encoded exactly once', () => {
    expect(ofUrl('/?a%20b=c%2Fd&e=f/~(g)')).toBe(expectedGet('/', 'a%20b=c%2Fd&e=f%2F~%28g%29'))
    expect(ofUrl('/?a=%')).toBe(expectedGet('/', 'a=%25'))
  })

  test('the query in an AWS signature may have names without a value, values with an equals sign, and empty parts', () => {
    expect(ofUrl('/?a&b=c=d&&')).toBe(expectedGet('/', 'a=&b=c%3Dd'))
    expect(ofUrl('/?')).toBe(expectedGet('/', ''))
  })
})

describe('the AWS signature covers the headers', () => {
  test('an AWS signature covers the headers in lower case, in sorted order and with single blanks', () => {
    const headers = { 'X-B': '  one   two ', 'x-a': '1' }
    expect(signatureOf({ headers })).toBe(
      expected(
        'sqs',
        ...['GET', '/', '', 'host:api.example', 'x-a:1', `x-amz-date:${TIME}`, 'x-b:one two'],
        ...['', 'host;x-a;x-amz-date;x-b', EMPTY_HASH],
      ),
    )
  })

  test.each(['Authorization', 'connection', 'Expect', 'User-Agent', 'X-Amzn-Trace-Id'])(
    'an AWS signature does not cover the header %s',
    (name) => {
      expect(signedHeaders({ headers: { [name]: '1' } })).toBe('host;x-amz-date')
    },
  )

  test('an AWS signature covers the host with its port', () => {
    expect(signatureOf({ url: 'https://api.example:8443/' })).toBe(
      expected(
        'sqs',
        ...['GET', '/', '', 'host:api.example:8443', `x-amz-date:${TIME}`],
        ...['', 'host;x-amz-date', EMPTY_HASH],
      ),
    )
  })
})

test('the body is included in an AWS signature by its hash', () => {
  const body = 'ä=1'
  const hash = createHash('sha256').update(body).digest('hex')
  expect(signatureOf({ method: 'POST', body })).toBe(
    expected(
      'sqs',
      ...['POST', '/', '', 'host:api.example', `x-amz-date:${TIME}`],
      ...['', 'host;x-amz-date', hash],
    ),
  )
})
