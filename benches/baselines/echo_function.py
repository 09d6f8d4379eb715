"""A function for functions-framework: sends back what it gets."""

import functions_framework


@functions_framework.http
def echo(request):
    return request.get_data()
