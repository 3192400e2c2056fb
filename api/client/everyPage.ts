/**
 * Iterates over a whole list. A page is loaded when the iteration reaches it.
 * @param read loads the list page of a page token. Without a token `read` loads the first page.
 */
export async function* everyPage<Page extends { nextPageToken?: string }, Item>(
  read: (pageToken: string | undefined) => Promise<Page>,
  items: (page: Page) => readonly Item[],
  pageToken?: string,
): AsyncGenerator<Item, void, undefined> {
  let token = pageToken
  do {
    const page = await read(token)
    yield* items(page)
    token = page.nextPageToken
  } while (token !== undefined)
}
