-- How an endpoint is called and listed.
alter table seller_endpoints
  -- By the seller: serviceName, tags, iconUrl, mcpUrl, input, output.
  add column metadata jsonb not null default '{}',
  -- The OpenAPI document that the seller names, and the metadata that a worker read in it.
  add column open_api_url text,
  add column open_api_status text,
  add column open_api_detail text,
  add column open_api_metadata jsonb not null default '{}',
  -- What the endpoint's own 402 declares: for the public list alone.
  add column seen_metadata jsonb not null default '{}';
