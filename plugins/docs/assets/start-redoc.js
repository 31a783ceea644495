/* global Redoc */
void window
  .askService("/openapi.json")
  .then((response) => response.json())
  .then((description) => Redoc.init(description, { disableSearch: true }, document.getElementById("redoc")));
