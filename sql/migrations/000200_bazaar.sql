-- These columns tell how clients call an endpoint, and how the public list shows it.
alter table seller_endpoints
  -- Holds the metadata from the seller: serviceName, tags, iconUrl, mcpUrl, input, output.
  add column metadata jsonb not null default '{}',
  -- These columns hold the URL of the OpenAPI document that the seller names, and the metadata that a worker has read
  -- from it.
  add column open_api_url text,
  add column open_api_status text,
  add column open_api_detail text,
  add column open_api_metadata jsonb not null default '{}',
  -- Holds the metadata that the endpoint's own 402 response declares, which only the public list uses.
  add column seen_metadata jsonb not null default '{}';
