class ApplicationController < ActionController::Base
  # A program that posts JSON has no form to take a token from.
  protect_from_forgery with: :exception, unless: -> { request.media_type == "application/json" }
end
