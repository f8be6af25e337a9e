// The documentation of the HTTP API at `/docs`: Swagger UI as a file of our own, so nothing comes from elsewhere.
import "swagger-ui-dist/swagger-ui.css";
import bundle from "swagger-ui-dist/swagger-ui-bundle.js?url";

declare const SwaggerUIBundle: (options: Record<string, unknown>) => unknown;

const script = document.createElement("script");
script.src = bundle;
script.onload = () =>
  SwaggerUIBundle({
    dom_id: "#api",
    url: new URL("openapi.json", document.baseURI).href,
    deepLinking: true,
    // A validator on the web would get the address of this service.
    validatorUrl: null,
  });
document.head.append(script);
