/**
 * Iterates over all entries of a list that has several pages. The iteration loads a page of the list only when it
 * reaches the page.
 * @param read loads the page of the list that a page token names. If `read` gets no page token, `read` loads the first
 * page.
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
