module provided

go 1.19

require github.com/aws/aws-lambda-go v1.50.0
