Rails.application.routes.draw do
  root "categories#index"

  resources :categories, only: :show, param: :slug
  resources :products, only: [:index, :show]
  resource :search, only: :show
  resources :orders, only: [:create, :show]
  get "reports/sales/:year", to: "reports#sales", as: :sales_report,
      constraints: { year: /\d{4}/, format: "csv" }

  get "up", to: "rails/health#show"
end
