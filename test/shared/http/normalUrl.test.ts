import { expect, test } from 'bun:test'
import { normalUrl } from '../../../shared/http/normalUrl.ts'

test.each([
  ['HTTPS://API.Example:443', 'https://api.example/'],
  ['https://api.example/a/../b/./c?x=/d#e', 'https://api.example/b/c'],
  ['https://api.example/%7euser/%41', 'https://api.example/~user/A'],
  ['https://api.example/a%2fb%3fc%25%23', 'https://api.example/a%2Fb%3Fc%25%23'],
  [
    'https://api.example/a%21%24%26%27%28%29%2a%2B%2c%3b%3D%3a%40',
    "https://api.example/a!$&'()*+,;=:@",
  ],
  ['https://api.example/[a]|^`"<>{}', 'https://api.example/%5Ba%5D%7C%5E%60%22%3C%3E%7B%7D'],
  ['https://api.example/100%', 'https://api.example/100%25'],
  ['https://api.example/bücher/%c3%bc', 'https://api.example/b%C3%BCcher/%C3%BC'],
  ['http://[::0001]:3000/a', 'http://[::1]:3000/a'],
])('the normal form of %s is %s, and is its own normal form', (text, normal) => {
  expect(normalUrl(text).url).toBe(normal)
  expect(normalUrl(normal).url).toBe(normal)
})

test('two URLs have different normal forms if they differ in letter case, empty segments, a slash at the end or encoded delimiters', () => {
  const urls = ['a/b', 'A/b', 'a//b', 'a/b/', 'a%2Fb', 'a%252Fb', 'a%00b', 'a%5Cb', 'a%20b', 'a+b']
  const forms = urls.map((path) => normalUrl(`https://api.example/${path}`).url)
  expect(new Set(forms).size).toBe(urls.length)
})
